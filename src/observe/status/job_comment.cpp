#include "observe/status/job_comment.hpp"

#include <algorithm>
#include <cctype>
#include <ctime>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "observe/status/progress_text.hpp"

namespace hortator::observe {
namespace {

constexpr std::size_t max_comment = 200;
constexpr std::size_t max_name = 24;

// Names of loops and values come from the program.
std::string plain(std::string_view text) {
  constexpr std::string_view allowed = " ./:+-_%";
  std::string result;
  for (const char c : text)
    result += std::isalnum(static_cast<unsigned char>(c)) != 0 || allowed.find(c) != allowed.npos ? c : '_';
  return result;
}

// The outermost loop whose length is known tells how far the run is.
std::string progress(const RankStatus& main) {
  auto text = text::concat("step ", main.updates);
  const auto loop = std::ranges::find_if(main.loops, [](const LoopStatus& each) { return each.total > 0; });
  if (loop == main.loops.end()) return text;
  const auto name = loop->title.empty() ? std::string("loop") : plain(loop->title.substr(0, max_name));
  return text + text::concat(' ', name, ' ', loop->done, '/', loop->total);
}

}  // namespace

std::string job_comment(const RankStatus& main, std::optional<double> samples_per_second) {
  auto text = (main.is_over ? "over: " : "") + progress(main);
  if (!main.values.empty()) {
    const auto loss = std::ranges::find(main.values, "loss", &std::pair<std::string, double>::first);
    const auto& [name, value] = loss != main.values.end() ? *loss : main.values.front();
    text += text::concat(' ', plain(name.substr(0, max_name)), ' ', value_text(value));
  }
  if (samples_per_second) {
    text += text::print(" %.3g samples/s", *samples_per_second);
  } else if (main.updates_per_second > 0) {
    text += text::print(" %.3g steps/s", main.updates_per_second);
  }
  if (main.save) text += " ckpt " + core::utc(static_cast<std::time_t>(main.save->at), "%H:%M");
  return text.substr(0, max_comment);
}

std::vector<std::string> comment_command(std::string_view job, const std::string& comment) {
  constexpr std::string_view slurm = "slurm ";
  constexpr std::string_view pbs = "pbs ";
  if (job.starts_with(slurm))
    return {"scontrol", "update", text::concat("JobId=", job.substr(slurm.size())), "Comment=" + comment};
  if (job.starts_with(pbs)) return {"qalter", "-W", "comment=" + comment, std::string(job.substr(pbs.size()))};
  return {};
}

}  // namespace hortator::observe
