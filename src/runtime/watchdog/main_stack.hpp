#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace hortator::runtime {

/// The time within which a rank takes its stack.
constexpr auto time_for_a_stack = std::chrono::milliseconds(200);

/// The stack of the main thread, innermost call first: function names where there are symbols, otherwise file+offset
/// for addr2line. Called by another thread. Interrupts the main thread with an unused real-time signal, whose handler
/// is installed only meanwhile and only takes addresses. Empty without such a signal or without an answer within
/// `patience`.
std::vector<std::string> stack_of_main_thread(std::chrono::milliseconds patience);

/// Loads the unwinder, so that the first stack is as cheap and safe as later ones.
void prepare_stacks();

/// A real-time signal without a handler that is neither blocked nor ignored; 0 if there is none. `blocked` is the main
/// thread's mask, with the lowest bit for signal 1.
int free_signal(unsigned long long blocked);

}  // namespace hortator::runtime
