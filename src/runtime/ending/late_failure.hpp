#pragma once

#include <exception>

/// What goes wrong where nothing can be thrown: in a destructor, when the program's body is already over.
namespace hortator::runtime {

/// hortator::run ends with it as if its body had thrown it. Of several the first counts. A program without
/// hortator::run is not told: whoever calls this says it as well.
void note_late_failure(const std::exception_ptr& thrown);

/// A run begins: what an earlier one of this process has left is not its own.
void forget_late_failure();
/// Throws it, if there is one.
void throw_late_failure();

}  // namespace hortator::runtime
