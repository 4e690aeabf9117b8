#pragma once

#include <exception>

/// Errors that cannot be thrown: those of destructors that run after the program's body has ended.
namespace hortator::runtime {

/// Stores the error: hortator::run ends as if its body had thrown it. Only the first is kept. Programs without
/// hortator::run do not see it, so the caller must also log it.
void note_late_failure(const std::exception_ptr& thrown);

/// Discards the error of an earlier run of this process. Called when a run begins.
void forget_late_failure();
/// Throws the stored error, if any.
void throw_late_failure();

}  // namespace hortator::runtime
