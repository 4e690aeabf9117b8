#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace hortator::runtime {

/// How long a rank may take to show it.
constexpr auto time_for_a_stack = std::chrono::milliseconds(200);

/// Where the main thread is, innermost call first: names as far as symbols are there, else file+offset for addr2line.
/// Called by another thread. The main thread is interrupted by a real-time signal that nobody uses, whose handler is
/// there only meanwhile; it only takes addresses. Empty when there is no such signal, or no answer within `patience`.
std::vector<std::string> stack_of_main_thread(std::chrono::milliseconds patience);

/// What makes the first stack as cheap and safe as later ones: the unwinder is loaded now.
void prepare_stacks();

/// A signal that has neither a handler nor is blocked or ignored; 0: there is none. `blocked` is the main thread's
/// mask, a bit a signal from 1 on.
int free_signal(unsigned long long blocked);

}  // namespace hortator::runtime
