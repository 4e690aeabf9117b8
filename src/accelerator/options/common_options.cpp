#include "accelerator/options/common_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "accelerator/options/option_table.hpp"
#include "core/field_count.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"

namespace hortator::accelerator {
namespace {

constexpr auto names = std::to_array<std::string_view>({
#define PROGRAM_OPTION(member, agreement) #member,
#define LAUNCH_OPTION(member, agreement, ...) #member,
#include "core/environment/program_options.inc"
});

/// Rows of members, without those of members of members.
constexpr std::size_t rows_of(std::string_view beginning) {
  return static_cast<std::size_t>(std::ranges::count_if(
      names, [&](auto name) { return name.starts_with(beginning) && name.find('.', beginning.size()) == name.npos; }));
}

/// `groups`: the members that are structs, whose members have rows.
template <typename Struct>
constexpr bool has_rows(std::string_view beginning, std::size_t groups = 0) {
  return rows_of(beginning) + groups == core::field_count<Struct>();
}

// A member that has no row in program_options.inc, so that no rank would compare it, does not compile.
static_assert(has_rows<GradientAccumulationOptions>("gradient_accumulation."));
static_assert(has_rows<GradScalerOptions>("grad_scaler."));
static_assert(has_rows<AutocastOptions>("autocast."));
static_assert(has_rows<MixedPrecisionPolicy>("mixed_precision_policy."));
static_assert(has_rows<ProtectionOptions>("protection."));
static_assert(has_rows<StragglerOptions>("stragglers."));
static_assert(has_rows<DataOptions>("data."));
static_assert(has_rows<DistributedDataParallelOptions>("ddp.", 1));
static_assert(has_rows<PowerSGDOptions>("ddp.power_sgd."));
static_assert(has_rows<ZeroConfig>("zero."));
static_assert(has_rows<ParallelConfig>("parallel."));
static_assert(has_rows<ProjectOptions>("project."));
static_assert(has_rows<CheckpointOptions>("checkpoint."));
static_assert(has_rows<MemoryCheckpointOptions>("memory_checkpoint."));
static_assert(has_rows<LocalCheckpointOptions>("local_checkpoint."));
static_assert(has_rows<RecordOptions>("record."));
constexpr std::size_t groups = 15;
static_assert(std::ranges::count_if(names, [](auto name) { return name.find('.') == name.npos; }) + groups ==
              core::field_count<AcceleratorOptions>());

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::vector<std::string>& values) { return text::join(values); }
std::string text_of(const TensorPlan& plan) { return describe(plan); }
std::string text_of(Precision value) { return std::string(to_string(value)); }
std::string text_of(std::integral auto value) { return text::concat(value); }

std::string text_of(std::chrono::milliseconds value) { return text::concat(value.count(), " ms"); }

std::string text_of(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

template <typename Enum>
requires std::is_enum_v<Enum> std::string text_of(Enum value) { return text::concat(static_cast<int>(value)); }

template <typename Call>
std::string text_of(const std::function<Call>& function) {
  return function ? "a function" : "none";
}

/// Where something is offloaded: the folder itself may differ between hosts.
std::string text_of(const std::filesystem::path& place) {
  return place.empty() || place == "cpu" ? place.string() : std::string("a folder");
}

template <typename Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : std::string("not set");
}

/// Returns the options with the value that a stage or an axis has where it is not set.
AcceleratorOptions with_defaults(AcceleratorOptions options) {
  auto& axes = options.parallel;
  for (auto* axis : {&axes.replicate, &axes.shard, &axes.tensor, &axes.context, &axes.experts, &axes.pipeline,
                     &axes.stages_per_rank, &axes.micro_batches})
    *axis = axis->value_or(1);
  axes.context_attention = axes.context_attention.value_or(ContextAttention::gather);
  axes.pipeline_schedule = axes.pipeline_schedule.value_or(PipelineSchedule::one_f_one_b);
  options.zero.stage = options.zero.stage.value_or(0);
  return options;
}

}  // namespace

void require_common(const AcceleratorOptions& options, const NamedValues& variables, const mpi::Communicator& host) {
  auto values = variables;
  const auto compared = with_defaults(options);
  visit_options(compared, [&]<typename Row>(const Row& row, const auto& value) {
    if constexpr (Row::agreement == Agreement::common) values.emplace_back(row.text(), text_of(value));
  });
  std::string all;
  for (const auto& [name, value] : values) all += text::concat(name, '=', value, '\n');
  if (mpi::equal_on_all(host, core::hash(all))) return;
  for (const auto& [name, value] : values) mpi::same_on_all(host, value, name);
}

}  // namespace hortator::accelerator
