// Environment variables and options that only some ranks have.
#include <chrono>
#include <concepts>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <type_traits>

#include "accelerator/options/common_options.hpp"
#include "accelerator/options/option_table.hpp"
#include "mpi/communicator.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

void change(bool& value) { value = !value; }
void change(std::integral auto& value) { value += 2; }  // an axis of 1 equals one that is not set
void change(double& value) { value += 0.001; }
void change(std::filesystem::path& value) { value = "another"; }
void change(std::vector<std::string>& value) { value = {"head"}; }
void change(TensorPlan& value) { value = {{"head", TensorDivision::columns}}; }
void change(std::vector<LogWith>& value) { value.clear(); }
void change(std::function<void(const Straggler&)>& value) {
  value = [](const Straggler&) {};
}
void change(std::function<void(const std::filesystem::path&)>& value) {
  value = [](const std::filesystem::path&) {};
}
void change(BucketHook& value) {
  value = [](BucketExchange&) {};
}
void change(std::chrono::milliseconds& value) { value += std::chrono::minutes(1); }

template <typename Enum>
requires std::is_enum_v<Enum>
void change(Enum& value) { value = static_cast<Enum>(static_cast<int>(value) + 2); }  // the default may be the second

template <typename Value>
void change(std::optional<Value>& value) {
  if (!value) value.emplace();
  change(*value);
}

// The error of comparing the options after the last rank has changed the option of this name; empty without an error.
std::string error_after_change(const State& state, std::string_view name) {
  AcceleratorOptions options;
  accelerator::visit_options(options, [&](const auto& row, auto& value) {
    if (row.name == name && state.is_last_process()) change(value);
  });
  try {
    accelerator::require_common(options, {}, mpi::Communicator::world());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every option that one rank sets differently is an error on all ranks that names it") {
  const State state;
  if (state.num_processes() == 1) return;
  std::vector<std::string> local;
  AcceleratorOptions options;
  accelerator::visit_options(options, [&]<typename Row>(const Row& row, const auto& /*value*/) {
    INFO(row.name);
    const auto error = error_after_change(state, row.name);
    if constexpr (Row::agreement == accelerator::Agreement::local) {
      CHECK(error == "");
      local.emplace_back(row.name);
    } else {
      CHECK_THAT(error, ContainsSubstring(row.text() + " differs between ranks"));
    }
  });
  CHECK(local == std::vector<std::string>{"cpu", "local_checkpoint.folder", "record.operators", "data.non_blocking",
                                          "log_with", "project.dir", "project.logging_dir", "checkpoint.on_complete",
                                          "local_checkpoint.max_bytes", "memory_checkpoint.max_bytes", "communicator",
                                          "collective_timeout"});
}

TEST_CASE("an Accelerator compares its options, and the error has both values") {
  const State state;
  if (state.num_processes() == 1) return;
  const auto other = state.num_processes() - 1;
  CHECK_THROWS_WITH(Accelerator({.ddp = {.bucket_cap_mb = state.is_last_process() ? 0.1 : 25}}),
                    ContainsSubstring("ddp.bucket_cap_mb differs between ranks: rank 0 has '25', rank " +
                                      std::to_string(other) + " has '0.1'"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 3, .keep_resident = {state.is_last_process() ? "a" : "b"}}}),
                    ContainsSubstring("zero.keep_resident differs between ranks: rank 0 has 'b'"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.sequence = state.is_last_process()}}),
                    ContainsSubstring("parallel.sequence differs between ranks"));
}

TEST_CASE("a variable that is invalid on one rank is an error on all ranks") {
  const State state;
  if (state.is_last_process()) setenv("HORTATOR_TENSOR", "two", 1);
  CHECK_THROWS_WITH(Accelerator(), ContainsSubstring("HORTATOR_TENSOR: expected a whole number from 1, got 'two'"));
  unsetenv("HORTATOR_TENSOR");
}

TEST_CASE("an option that is not set equals its default") {
  const State state;
  AcceleratorOptions options;
  if (state.is_last_process()) options = {.zero = {.stage = 0}, .parallel = {.replicate = 1, .tensor = 1}};
  CHECK_NOTHROW(accelerator::require_common(options, {}, mpi::Communicator::world()));
}

TEST_CASE("an environment variable that only some ranks have is an error on all ranks that names it") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const auto* name :
       {"HORTATOR_ZERO_STAGE", "HORTATOR_GRADIENT_ACCUMULATION_STEPS", "HORTATOR_RECOMPUTE_LAYERS"}) {
    if (state.is_last_process()) setenv(name, "2", 1);
    CHECK_THROWS_WITH(Accelerator(), ContainsSubstring(name) && ContainsSubstring("differs between ranks"));
    unsetenv(name);
  }
  CHECK_NOTHROW(Accelerator());
}
