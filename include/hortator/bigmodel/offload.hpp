#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <string>
#include <vector>

namespace torch::jit {
struct Module;
}

namespace hortator {

/// Of cpu_offload.
struct CpuOffloadOptions {
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that stay as they are
  bool offload_buffers = false;
  /// Of modules on a device: bytes of parameters there at a time (0: what fetching ahead needs), what comes and goes at
  /// once, and how many pages are on their way before they are used.
  std::uint64_t resident_bytes = 0;
  std::uint64_t page_bytes = std::uint64_t{16} << 20;
  int fetch_ahead_pages = 2;
};

/// Of disk_offload.
struct DiskOffloadOptions {
  std::uint64_t resident_bytes = 0;  ///< of parameters in memory at a time; 0: what reading ahead needs
  std::uint64_t page_bytes = std::uint64_t{16} << 20;  ///< what comes and goes at once; larger parameters are pages
  int read_ahead_pages = 2;
  std::uint64_t recycled_bytes = std::uint64_t{64} << 20;  ///< of freed gradients and the like, kept for the next
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that stay in memory
  bool offload_buffers = false;
};

/// What is offloaded, and what has come and gone for it.
struct OffloadCounters {
  std::uint64_t offloaded_bytes = 0;  ///< of the parameters that are paged
  std::uint64_t resident_bytes = 0;   ///< memory that their pages take now
  std::uint64_t peak_resident_bytes = 0;
  std::uint64_t pages_read = 0;
  std::uint64_t pages_read_ahead = 0;  ///< of these, before an operator asked
  std::uint64_t pages_written = 0;
};

/// A module whose parameters are not in memory except while they are used. The module is used, trained and optimised as
/// ever: what an operator reads is there in time, in forward, backward and optimizer.step(), and what was changed is
/// kept. What was used before is read ahead in the same order.
///
/// Pointers to a parameter's values are good within a Pin; outside of it data_ptr() throws when the parameter is absent
/// (in LibTorch before 2.15 a pointer without a type is null). torch::save() wants a Pin of all parameters;
/// torch::load() and module->to() belong before, and are an error afterwards. Views that were made of parameters before
/// do not work.
///
/// At its end the parameters are put back into memory, as remove() does, if there is room for them; if not, or while an
/// exception ends the scope, they are left without values, and to use one is an error that says so.
class HORTATOR_API Offload {
 public:
  ~Offload();
  Offload(Offload&& other) noexcept;
  Offload& operator=(Offload&& other) noexcept;

  /// Puts the parameters back into memory for good. If it throws, it can be called again.
  void remove();

  OffloadCounters counters() const;

  class State;
  explicit Offload(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

/// Keeps parameters in memory from its construction to its end, so that pointers to them are good, and what is written
/// through them is kept. Tensors that are always in memory may be among them.
class HORTATOR_API Pin {
 public:
  enum class For { reading, writing };

  explicit Pin(const std::vector<at::Tensor>& tensors, For purpose = For::reading);
  explicit Pin(const at::Tensor& tensor, For purpose = For::reading);
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  class Held;
  std::unique_ptr<Held> held_;
};

namespace detail {
[[nodiscard]] HORTATOR_API Offload disk_offload(const torch::nn::Module& module, const std::filesystem::path& folder,
                                                const DiskOffloadOptions& options);
[[nodiscard]] HORTATOR_API Offload cpu_offload(const torch::nn::Module& module, const CpuOffloadOptions& options);
}  // namespace detail

/// The module's parameters move to a file in `folder` (made if it is not there), and are read when they are used. The
/// file has no name and goes with the process, however that ends. For modules on the CPU or on one device, which gets
/// its pages through page-locked memory. Modules that were made under DeferredConstruction are initialised page by
/// page, straight to the file.
template <Module M>
[[nodiscard]] Offload disk_offload(M& model, const std::filesystem::path& folder,
                                   const DiskOffloadOptions& options = {}) {
  return detail::disk_offload(detail::module_of(model), folder, options);
}
[[nodiscard]] HORTATOR_API Offload disk_offload(const torch::jit::Module& model, const std::filesystem::path& folder,
                                                const DiskOffloadOptions& options = {});

/// The module's parameters move to the host's memory, page-locked, and come to the module's device while they are used;
/// remove() and the end put them back there. For modules on the CPU both are the same memory: nothing is copied.
template <Module M>
[[nodiscard]] Offload cpu_offload(M& model, const CpuOffloadOptions& options = {}) {
  return detail::cpu_offload(detail::module_of(model), options);
}
[[nodiscard]] HORTATOR_API Offload cpu_offload(const torch::jit::Module& model, const CpuOffloadOptions& options = {});

}  // namespace hortator
