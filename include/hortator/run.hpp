#pragma once

#include <functional>
#include <hortator/detail/built_with.hpp>
#include <hortator/export.hpp>

namespace hortator {

/// Runs the program's body and turns its end into an exit code: `int main(int argc, char** argv) { return
/// hortator::run(argc, argv, [] {...}); }`
///
/// An exception on any rank ends the whole job within two seconds, with one line that names the rank, its host and the
/// problem; the same facts stand in failure.json in the run folder. The exit code is 2 for a UsageError, else 1. A body
/// that returns gives 0, or 75 when Accelerator::should_stop() was true in it: "stopped, to be continued", which
/// outcome.json in the run folder says as well. A last checkpoint that could not be written while the body ended is an
/// exception, too. Starts MPI unless the application has, and finalises it if it was started here.
///
/// `built` says what the program was compiled with, and is left to its default: another LibTorch or C++ library than
/// this one's is an error that names both.
/// @collective over the world.
int HORTATOR_API run(int argc, char** argv, const std::function<void()>& body, const BuiltWith& built = {});

}  // namespace hortator
