#include "launch/job/directive_values.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

std::string flag_named(std::string_view key) {
  std::string flag(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace

const std::string& checked_value(const std::string& value, std::string_view setting, std::string_view characters) {
  const auto at = value.find_first_not_of(characters);
  if (at == std::string::npos && !value.empty()) return value;
  throw UsageError({.what = text::concat("--", flag_named(setting), ": expected letters, digits and ",
                                         characters.substr(62), ", got ", text::quote(value)),
                    .why = "values in the scheduler's lines cannot be quoted"});
}

void add_directive(DirectiveLines& lines, const Job& job, std::string_view setting, const std::string& option,
                   std::string_view characters) {
  if (const auto value = job.settings.word(setting))
    lines.push_back(option + checked_value(*value, setting, characters));
}

void refuse_settings(const Job& job, const std::vector<std::string_view>& settings) {
  const auto title = facts_of(job.scheduler).title;
  for (const auto key : settings) {
    const auto* given = job.settings.find(key);
    if (given == nullptr) continue;
    throw UsageError(
        {.what = text::concat(given->origin, ": ", text::quote(text::join(given->values, " ")), " does not work with ",
                              title, ", which has nothing like it"),
         .hint = text::concat("use --directive with your site's equivalent: ", facts_of(job.scheduler).prefix, "...")});
  }
  if (job.spare_nodes > 0)
    throw UsageError(
        {.what = text::concat("--spare-nodes works only with Slurm and PBS, and this job is for ", title)});
}

int cpus_of_node(const Job& job) {
  return job.cpus_per_node.value_or(*job.request.ranks_per_node * job.request.threads.value_or(1));
}

std::optional<long long> memory_of_node(const Job& job) {
  if (const auto memory = job.settings.word("mem")) return parse_memory(*memory);
  const auto each = job.settings.word("mem_per_cpu");
  return each ? std::optional(*parse_memory(*each) * cpus_of_node(job)) : std::nullopt;
}

std::optional<std::string> job_to_wait_for(const Job& job) {
  const auto dependency = job.settings.word("dependency");
  if (!dependency) return {};
  constexpr std::string_view any = "afterany:";
  if (dependency->starts_with(any)) return checked_value(dependency->substr(any.size()), "dependency");
  throw UsageError(
      {.what = text::concat("--dependency: expected afterany:JOB, got ", text::quote(*dependency)),
       .why = text::concat(facts_of(job.scheduler).title, " waits for the end of a job, however it ends")});
}

std::optional<std::string> mail_points(const Job& job) {
  const auto types = job.settings.word("mail_type");
  if (!types) return job.settings.word("mail") ? std::optional<std::string>("ae") : std::nullopt;
  if (const auto points = mail_points_of_types(*types)) return *points;
  throw UsageError({.what = text::concat("--mail-type: ", facts_of(job.scheduler).title,
                                         " has BEGIN, END, FAIL, ALL and NONE, got ", text::quote(*types))});
}

std::string range_from_one(const ArrayTasks& array, const SchedulerFacts& facts) {
  if (array.numbers != text::concat("0-", array.count - 1)) {
    throw UsageError({.what = text::concat("--array: expected a range that begins with 0, such as 0-3, got ",
                                           text::quote(array.numbers)),
                      .why = text::concat("the tasks of ", facts.title, " count from 1, and those of the run from 0")});
  }
  return text::concat("1-", array.count);
}

}  // namespace hortator::launching
