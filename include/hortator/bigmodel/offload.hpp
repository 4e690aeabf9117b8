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

/// Options of cpu_offload.
struct CpuOffloadOptions {
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that are not offloaded
  bool offload_buffers = false;
  /// For modules on a device: bytes of parameters there at a time (0: what fetching ahead needs), the size of a page,
  /// and the number of pages that are fetched before they are used.
  std::uint64_t resident_bytes = 0;
  std::uint64_t page_bytes = std::uint64_t{16} << 20;
  int fetch_ahead_pages = 2;
};

/// Options of disk_offload.
struct DiskOffloadOptions {
  std::uint64_t resident_bytes = 0;  ///< of parameters in memory at a time; 0: what reading ahead needs
  std::uint64_t page_bytes = std::uint64_t{16} << 20;  ///< size of a page; a larger parameter is one page
  int read_ahead_pages = 2;
  std::uint64_t recycled_bytes = std::uint64_t{64} << 20;  ///< of freed gradients and similar memory, kept for reuse
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that stay in memory
  bool offload_buffers = false;
};

/// How much is offloaded, and how many pages were read and written.
struct OffloadCounters {
  std::uint64_t offloaded_bytes = 0;  ///< of the parameters that are paged
  std::uint64_t resident_bytes = 0;   ///< memory that their pages use now
  std::uint64_t peak_resident_bytes = 0;
  std::uint64_t pages_read = 0;
  std::uint64_t pages_read_ahead = 0;  ///< of these, before an operator needed them
  std::uint64_t pages_written = 0;
};

/// A module whose parameters are in memory only while they are used. You use, train and optimise the module as before:
/// parameters are fetched before an operator reads them, in forward, backward and optimizer.step(), and changes are
/// kept. They are read ahead in the order of the last pass.
///
/// Pointers to a parameter's values are valid within a Pin; outside of it data_ptr() throws if the parameter is absent
/// (in LibTorch before 2.15 a pointer without a type is null). torch::save() needs a Pin of all parameters. Call
/// torch::load() and module->to() before offloading; afterwards they are an error. Views of parameters that were made
/// before offloading do not work.
///
/// The destructor puts the parameters back into memory, as remove() does, if there is enough memory. If not, or if an
/// exception ends the scope, they have no values, and using one throws an error that says so.
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

/// Keeps parameters in memory while it lives, so that pointers to them are valid, and keeps what is written through
/// them. Tensors that are always in memory are allowed.
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

/// Moves the module's parameters to a file in `folder` (created if it does not exist), from which they are read when
/// they are used. The file has no name and disappears with the process, however that ends. For modules on the CPU or on
/// one device, which gets its pages through page-locked memory. Modules that were made under DeferredConstruction are
/// initialised page by page, directly in the file.
template <Module M>
[[nodiscard]] Offload disk_offload(M& model, const std::filesystem::path& folder,
                                   const DiskOffloadOptions& options = {}) {
  return detail::disk_offload(detail::module_of(model), folder, options);
}
[[nodiscard]] HORTATOR_API Offload disk_offload(const torch::jit::Module& model, const std::filesystem::path& folder,
                                                const DiskOffloadOptions& options = {});

/// Moves the module's parameters to page-locked memory of the host, from which they are copied to the module's device
/// when they are used; remove() and the destructor put them back there. For modules on the CPU nothing is copied.
template <Module M>
[[nodiscard]] Offload cpu_offload(M& model, const CpuOffloadOptions& options = {}) {
  return detail::cpu_offload(detail::module_of(model), options);
}
[[nodiscard]] HORTATOR_API Offload cpu_offload(const torch::jit::Module& model, const CpuOffloadOptions& options = {});

}  // namespace hortator
