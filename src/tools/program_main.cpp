#include "tools/verbs.hpp"

// One verb, HORTATOR_VERB, as a program of its own: libexec/hortator/hortator-<verb>.
int main(int argc, char** argv) { return hortator::tools::run_guarded(argc, argv, hortator::tools::HORTATOR_VERB); }
