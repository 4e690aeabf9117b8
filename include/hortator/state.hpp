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

/// Of a State, and so of an Accelerator.
struct StateOptions {
  bool cpu = false;  ///< stay on the CPU, also where there are GPUs
  /// Ranks to work with in place of MPI_COMM_WORLD, as a Fortran handle (MPI_Comm_c2f).
  std::optional<int> communicator = {};
  /// How long a collective may last before the job is ended, with exit code 124 and a report of the ranks that are
  /// missing. By default HORTATOR_TIMEOUT (30s, 10min, 2h), or ten minutes.
  std::optional<std::chrono::milliseconds> collective_timeout = {};
};

/// Who and where this process is among the others. Enough for programs that need no Accelerator (inference, tools).
/// Copies share one world. Construction is @collective.
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

  /// All ranks wait for each other. @collective
  void wait_for_everyone() const;

  /// Prints its arguments and a newline once a machine: on each node's first rank.
  template <typename... Parts>
  void print(const Parts&... parts) const {
    if (!is_local_main_process()) return;
    std::ostringstream line;
    (line << ... << parts);
    print_line(line.str());
  }

  /// Does the work where it is this process's; gives its result there and nothing elsewhere.
  template <std::invocable Work>
  auto on_main_process(Work&& work) const {
    return only_if(is_main_process(), std::forward<Work>(work));
  }
  template <std::invocable Work>
  auto on_local_main_process(Work&& work) const {  ///< on the first of each node
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

  /// The main process does the work, then all others do it: a cache is written once and then read. Returns the work's
  /// result. An exception on one side ends both. @collective
  template <std::invocable Work>
  auto main_process_first(Work&& work) const {
    return one_side_first(is_main_process(), std::forward<Work>(work));
  }
  /// The same on each node: its first rank before the others. @collective over all ranks, as the reference's.
  template <std::invocable Work>
  auto local_main_process_first(Work&& work) const {
    return one_side_first(is_local_main_process(), std::forward<Work>(work));
  }

  /// This rank's part of what every rank has: of a vector, a tensor (along dimension 0), a map, tuple or struct of
  /// them, or a data set (then a Subset). The first ranks get one value more where they cannot all get as many; some
  /// may get none. Nothing is sent. Needs <hortator/parallel/split_between_processes.hpp>.
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
