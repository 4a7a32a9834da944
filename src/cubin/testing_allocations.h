// testing_allocations.h: the largest single allocation that a test's code asks for. Links a
// replacement of operator new into the test program.
#pragma once

#include <cstddef>

namespace iket::cubin::testing {

void ForgetAllocations();
// The largest request since then, in bytes, by any thread.
size_t LargestAllocation();

}  // namespace iket::cubin::testing
