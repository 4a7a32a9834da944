// peer.h: whose process is at the other end of a connection within this machine.
#pragma once

#include <sys/types.h>

#include <optional>

namespace iket::serve {

// Nothing if the kernel does not say (no /proc), or the socket is not of IPv4. Cost: reads
// /proc/net/tcp, a line for each connection of the machine.
std::optional<uid_t> UserAtOtherEnd(int socket);

}  // namespace iket::serve
