#pragma once

#include <string>
#include <utility>
#include <vector>

/// A grid over the arguments of a program: one task of a job array for each combination.
namespace hortator::launching {

/// One argument with its values: "lr=0.1,0.01".
struct SweepAxis {
  std::string name = "";
  std::vector<std::string> values = {};
};

struct SweepTask {
  std::vector<std::pair<std::string, std::string>> arguments = {};  ///< the name and the value on each axis
  std::vector<std::string> command = {};                            ///< the program and all its arguments
};

/// Throws UsageError for text of another form; `flag` begins the message.
SweepAxis parse_axis(const std::string& text, const std::string& flag);

/// All combinations; the last axis changes fastest. `{name}` in the command stands for the value; a name that is not in
/// the command is appended as `--name value`. Throws UsageError for too many tasks, or a name that is given twice.
std::vector<SweepTask> sweep_tasks(const std::vector<SweepAxis>& axes, const std::vector<std::string>& command);

/// The content of task.json in the run folder of a task: one line.
std::string to_json(const SweepTask& task, int number);

}  // namespace hortator::launching
