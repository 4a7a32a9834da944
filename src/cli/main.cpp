#include "cli/command.h"

int main(int argc, char** argv) { return iket::cli::Main(argc, argv); }
