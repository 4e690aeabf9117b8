#include "planning/candidate.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::planning {
namespace {

std::vector<int> divisors(int number, int most) {
  std::vector<int> found;
  for (int i = 1; i <= number && i <= most; ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

std::vector<int> sizes(bool is_possible, int ranks, int most) {
  return is_possible ? divisors(ranks, most) : std::vector<int>{1};
}

std::vector<bool> both_if(bool is_possible) {
  return is_possible ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

// Four micro-batches for each stage keep the bubble small, sixteen smaller; more than that makes them tiny.
std::vector<int> micro_batches_of(int pipeline) {
  if (pipeline == 1) return {1};
  return {pipeline, 4 * pipeline, 16 * pipeline};
}

std::vector<Schedule> schedules_of(int pipeline) {
  if (pipeline == 1) return {Schedule::one_f_one_b};
  return {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble};
}

// Stages 2 and 3 would communicate for each micro-batch of a pipeline.
std::vector<int> zero_stages(const Choices& choices, const Candidate& one) {
  if (!choices.zero || one.data == 1) return {0};
  return one.pipeline > 1 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2, 3};
}

void add_offloads(std::vector<Candidate>& all, const Choices& choices, Candidate one) {
  for (const bool offload : both_if(choices.offload && one.zero > 0)) {
    for (const bool parameters : both_if(offload && one.zero == 3)) {
      for (const bool recompute : both_if(choices.recompute)) {
        one.offload = offload;
        one.offload_parameters = parameters;
        one.recompute = recompute;
        all.push_back(one);
      }
    }
  }
}

void add_ways(std::vector<Candidate>& all, const Choices& choices, Candidate one) {
  for (const auto schedule : schedules_of(one.pipeline)) {
    for (const int micro_batches : micro_batches_of(one.pipeline)) {
      for (const int zero : zero_stages(choices, one)) {
        one.schedule = schedule;
        one.micro_batches = micro_batches;
        one.zero = zero;
        add_offloads(all, choices, one);
      }
    }
  }
}

// Names and values of what differs from a launch without settings.
std::vector<std::pair<std::string, std::string>> settings_of(const Candidate& one) {
  std::vector<std::pair<std::string, std::string>> settings;
  const auto add_count = [&](const char* name, int count) {
    if (count > 1) settings.emplace_back(name, std::to_string(count));
  };
  add_count("tensor", one.tensor);
  add_count("context", one.context);
  add_count("pipeline", one.pipeline);
  if (one.pipeline > 1) {
    settings.emplace_back("pipeline-schedule", name_of(one.schedule));
    settings.emplace_back("micro-batches", std::to_string(one.micro_batches));
  }
  if (one.zero > 0) settings.emplace_back("zero-stage", std::to_string(one.zero));
  if (one.offload) settings.emplace_back("offload-optimizer", "cpu");
  if (one.offload_parameters) settings.emplace_back("offload-parameters", "cpu");
  if (one.recompute) settings.emplace_back("recompute-layers", "all");
  return settings;
}

}  // namespace

std::string_view name_of(Schedule schedule) {
  constexpr std::array<std::string_view, 4> names = {"gpipe", "1f1b", "interleaved", "zb-h1"};
  return names[static_cast<std::size_t>(schedule)];
}

std::vector<Candidate> candidates(const Choices& choices) {
  const auto limit = [](int given, int otherwise) { return given > 0 ? given : otherwise; };
  std::vector<Candidate> all;
  for (const int pipeline : sizes(choices.pipeline, choices.ranks, limit(choices.max_pipeline, choices.ranks))) {
    const int stage = choices.ranks / pipeline;
    for (const int tensor : sizes(choices.tensor, stage, limit(choices.max_tensor, choices.ranks_per_node))) {
      const int most = std::min(limit(choices.max_context, choices.ranks_per_node), choices.ranks_per_node / tensor);
      for (const int context : sizes(choices.context, stage / tensor, std::max(most, 1))) {
        add_ways(all, choices,
                 {.data = stage / tensor / context, .tensor = tensor, .context = context, .pipeline = pipeline});
      }
    }
  }
  return all;
}

std::optional<Candidate> on_at_most(Candidate candidate, int ranks) {
  const int others = candidate.ranks() / candidate.data;
  if (others > ranks) return {};
  candidate.data = divisors(candidate.data, ranks / others).back();
  if (candidate.data == 1) {
    candidate.zero = 0;
    candidate.offload = candidate.offload_parameters = false;
  }
  return candidate;
}

std::string launch_flags(const Candidate& candidate) {
  std::vector<std::string> flags;
  for (const auto& [name, value] : settings_of(candidate)) flags.push_back(text::concat("--", name, ' ', value));
  return text::join(flags, " ");
}

std::vector<std::string> variables(const Candidate& candidate) {
  std::vector<std::string> assignments;
  for (const auto& [name, value] : settings_of(candidate)) {
    std::string variable = "HORTATOR_";
    for (const char c : name)
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    assignments.push_back(text::concat(variable, '=', value));
  }
  return assignments;
}

}  // namespace hortator::planning
