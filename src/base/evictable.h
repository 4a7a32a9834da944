// evictable.h: mappings of files whose pages may leave this process at any moment. They come back
// from the file when they are touched, so what lies there can be larger than memory.
//
// Cost: a lock when a mapping comes or goes; to evict, one call a mapping, and a page fault for
// each page that is touched again.
#pragma once

#include <cstddef>

namespace iket {

// `address` as mmap gave it. The mapping is of a file: shared, or never written to.
void AddEvictable(void* address, size_t bytes);
// Before it is unmapped. False if it was never added.
bool RemoveEvictable(void* address);

// Takes all pages of all of them out of this process. Any thread may go on using them.
void EvictAll();

}  // namespace iket
