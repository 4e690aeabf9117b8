#include "tools/verbs.hpp"

int main(int argc, char** argv) { return hortator::tools::run_guarded(argc, argv, hortator::tools::run); }
