#include "cli/verbs.hpp"

// One verb, HORTATOR_VERB, as a program of its own: libexec/hortator/hortator-<verb>.
int main(int argc, char** argv) { return hortator::cli::run_guarded(argc, argv, hortator::cli::HORTATOR_VERB); }
