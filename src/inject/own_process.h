// own_process.h: whether this is still the process that asked first, and not a child that fork()
// made of it since: without a system call, since every launch asks.
//
// A page that the kernel gives to children as zeros tells (Linux 4.14, MADV_WIPEONFORK); so it
// tells of children by clone() as well. Where there is no such page the process id is asked for,
// some 100 ns to 300 ns in a virtual machine.
#pragma once

namespace iket::inject {

// True in the process that called it first. A child of vfork(), which has its parent's memory,
// counts as the parent.
bool IsOwnProcess() noexcept;

}  // namespace iket::inject
