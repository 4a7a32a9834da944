// Needs libstdc++ at run time, which check_needed must find (tests/cmake/CMakeLists.txt).
#include <iostream>
int main() { std::cout << "more than glibc\n"; }
