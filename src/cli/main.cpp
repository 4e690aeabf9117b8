#include "cli/verbs.hpp"

int main(int argc, char** argv) { return hortator::cli::run_guarded(argc, argv, hortator::cli::run); }
