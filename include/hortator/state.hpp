#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <concepts>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hortator {

namespace runtime {
class World;
}

struct SplitOptions;

/// Whether a run has several ranks, and what they compute on.
enum class DistributedType { no, multi_cpu, multi_gpu };
HORTATOR_API std::string_view to_string(DistributedType type);

/// Options of a State; AcceleratorOptions have the same.
struct StateOptions {
  bool cpu = false;  ///< compute on the CPU even if there are GPUs
  /// The communicator to use in place of MPI_COMM_WORLD, as a Fortran handle (MPI_Comm_c2f).
  std::optional<int> communicator = {};
  /// The time limit of a collective, after which the job ends with exit code 124 and a report of the missing ranks. By
  /// default HORTATOR_TIMEOUT (30s, 10min, 2h), or ten minutes.
  std::optional<std::chrono::milliseconds> collective_timeout = {};
};

/// This process's rank, node and device among all processes. Sufficient for programs that need no Accelerator
/// (inference, tools). Copies share one world. Construction is @collective.
class HORTATOR_API State {
 public:
  explicit State(const StateOptions& options = {});

  int process_index() const;
  int num_processes() const;
  int local_process_index() const;
  int num_nodes() const;
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }
  bool is_last_process() const { return process_index() == num_processes() - 1; }
  const std::string& host() const;
  c10::Device device() const;
  DistributedType distributed_type() const;

  /// Waits until all ranks have called it. @collective
  void wait_for_everyone() const;

  /// Prints its arguments and a newline on the first rank of each node.
  template <typename... Parts>
  void print(const Parts&... parts) const {
    if (!is_local_main_process()) return;
    std::ostringstream line;
    (line << ... << parts);
    print_line(line.str());
  }

  /// Calls `work` on one process only. Returns its result there, in an optional, and nothing on the others.
  template <std::invocable Work>
  auto on_main_process(Work&& work) const {
    return only_if(is_main_process(), std::forward<Work>(work));
  }
  template <std::invocable Work>
  auto on_local_main_process(Work&& work) const {  ///< on the first rank of each node
    return only_if(is_local_main_process(), std::forward<Work>(work));
  }
  template <std::invocable Work>
  auto on_last_process(Work&& work) const {
    return only_if(is_last_process(), std::forward<Work>(work));
  }
  template <std::invocable Work>
  auto on_process(int process_index, Work&& work) const {
    return only_if(this->process_index() == process_index, std::forward<Work>(work));
  }
  template <std::invocable Work>
  auto on_local_process(int local_process_index, Work&& work) const {  ///< on each node
    return only_if(this->local_process_index() == local_process_index, std::forward<Work>(work));
  }

  /// Calls `work` on the main process, then on all others, so that a cache is written once and then read. Returns its
  /// result. If `work` throws on any process, all throw. @collective
  template <std::invocable Work>
  auto main_process_first(Work&& work) const {
    return one_side_first(is_main_process(), std::forward<Work>(work));
  }
  /// Calls `work` on the first rank of each node, then on the others. @collective over all ranks, as in Hugging Face
  /// Accelerate.
  template <std::invocable Work>
  auto local_main_process_first(Work&& work) const {
    return one_side_first(is_local_main_process(), std::forward<Work>(work));
  }

  /// Returns this rank's part of `values`, which every rank has: a vector, a tensor (split along dimension 0), a map,
  /// tuple or struct of them, or a data set (returns a Subset). If the number is not divisible, the first ranks get one
  /// value more; some may get none. Ranks that compute the same batches (along the mesh's axes tensor and context) get
  /// the same values. Local. Needs <hortator/parallel/split_between_processes.hpp>.
  template <typename T>
  auto split_between_processes(T&& values, const SplitOptions& options) const;
  template <typename T>
  auto split_between_processes(T&& values) const;

  runtime::World& world() const { return *world_; }

 private:
  template <typename Work>
  static auto only_if(bool mine, Work&& work) {
    using Result = std::invoke_result_t<Work>;
    if constexpr (std::is_void_v<Result>) {
      if (mine) std::forward<Work>(work)();
    } else {
      return mine ? std::optional<std::decay_t<Result>>(std::forward<Work>(work)()) : std::nullopt;
    }
  }
  template <typename Work>
  auto one_side_first(bool first, Work&& work) const {
    using Result = std::invoke_result_t<Work>;
    if constexpr (std::is_void_v<Result>) {
      in_turns(first, work);
    } else {
      std::optional<Result> result;
      in_turns(first, [&] { result.emplace(work()); });
      return std::move(*result);
    }
  }
  void in_turns(bool first, const std::function<void()>& work) const;
  static void print_line(const std::string& line);

  std::shared_ptr<runtime::World> world_;
};

}  // namespace hortator
