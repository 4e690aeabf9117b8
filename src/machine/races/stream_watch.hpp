#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <functional>
#include <string>
#include <string_view>

namespace hortator::machine {

/// While it lives, finds two uses of the same memory of an accelerator, or of page-locked memory of the host, at least
/// one of them a write, that no event and no wait puts in order. `report` is called once for each pair of operators
/// and places, by the thread that submitted the second. One per process.
///
/// It knows LibTorch's operators, and streams and events as LibTorch's generic classes use them, in all threads. Not
/// visible are waits by CUDA's own functions, recorded work, and the host's own code that reads page-locked memory.
class StreamWatch {
 public:
  using Report = std::function<void(const std::string& finding)>;

  StreamWatch(c10::DeviceType type, Report report);
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

 private:
  c10::DeviceType type_;
  const c10::impl::DeviceGuardImplInterface* guard_;
  at::CallbackHandle operators_;
};

/// A use by work that is no operator of LibTorch, such as a kernel of another library. Does nothing unless streams are
/// watched. `name` lives as long as the process.
void note_use(const at::Tensor& tensor, const c10::Stream& stream, std::string_view name, bool writes);

}  // namespace hortator::machine
