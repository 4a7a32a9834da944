// SPDX-License-Identifier: Apache-2.0
//
// The cubin named by the macro EXAMPLE_CUBIN (the build sets it), as bytes of this program: one
// file to carry, and nothing to find at run time. Include it once in a program.
#pragma once

asm(R"(
  .pushsection .rodata
  .balign 64
  .globl example_cubin
example_cubin:
  .incbin ")" EXAMPLE_CUBIN R"("
  .byte 0
  .popsection
)");

extern "C" const unsigned char example_cubin[];
