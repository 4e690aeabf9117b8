#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/job/job.hpp"

/// Values in a scheduler's lines of a script. These lines are not shell code: nothing can be quoted.
namespace hortator::launching {

using DirectiveLines = std::vector<std::string>;

constexpr std::string_view plain_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@%/-";
/// Slurm's constraints may contain operators.
constexpr std::string_view with_operators =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@%/-&|*()[]";

/// The value itself. Throws UsageError that names the setting for a value with other characters, or an empty one.
const std::string& checked_value(const std::string& value, std::string_view setting,
                                 std::string_view characters = plain_characters);

/// Adds `option` and the value of the setting, if it has one.
void add_directive(DirectiveLines& lines, const Job& job, std::string_view setting, const std::string& option,
                   std::string_view characters = plain_characters);

/// Throws UsageError if one of the settings is given: the scheduler has nothing like it.
void refuse_settings(const Job& job, const std::vector<std::string_view>& settings);

/// The CPUs that the job asks for on each node.
int cpus_of_node(const Job& job);
/// The memory that the job asks for on each node, in MB; nothing if it does not.
std::optional<long long> memory_of_node(const Job& job);

/// The number of the job after which this one starts, whatever became of that: "afterany:41". Throws UsageError for
/// other dependencies, which the scheduler cannot express; nothing if there is none.
std::optional<std::string> job_to_wait_for(const Job& job);

/// When the job sends mail, in the characters of qsub's -m: begin, abort, end; nothing if it sends none.
std::optional<std::string> mail_points(const Job& job);

/// Tasks of an array as the range of a scheduler whose numbers begin with 1: the script counts from the job's own first
/// number. Throws UsageError for a list.
std::string range_from_one(const ArrayTasks& array, const SchedulerFacts& facts);

}  // namespace hortator::launching
