#include "cli/run_iket/run_iket.h"

int main(int argc, char** argv) { return iket::cli::run_iket::Main(argc, argv); }
