#include "accelerator/batch_size/out_of_memory.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>

namespace hortator::accelerator {

bool speaks_of_memory(std::string_view message) {
  constexpr std::array<std::string_view, 5> marks = {
      " out of memory.",  // CUDA, HIP, XPU
      "MPS backend out of memory",
      "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",  // what cuDNN makes of it
      "DefaultCPUAllocator: can't allocate memory",
      "FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed",  // HPU
  };
  return std::any_of(marks.begin(), marks.end(),
                     [&](auto mark) { return message.find(mark) != std::string_view::npos; });
}

bool is_out_of_memory(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const c10::OutOfMemoryError&) {
    return true;
  } catch (const std::logic_error&) {
    return false;  // Python's ValueError and the like, whatever they speak of
  } catch (const std::exception& error) {
    const std::string_view message = error.what();
    // Ranks that throw together have another rank's message, not its type.
    if (speaks_of_memory(message) || message.find("std::bad_alloc") != std::string_view::npos) return true;
    try {
      std::rethrow_if_nested(error);
    } catch (...) {
      return is_out_of_memory(std::current_exception());
    }
    return false;
  } catch (...) {
    return false;
  }
}

}  // namespace hortator::accelerator
