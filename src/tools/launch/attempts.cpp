#include "tools/launch/attempts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/time.hpp"
#include "launch/restarts/spare_hosts.hpp"
#include "tools/launch/host_findings.hpp"
#include "tools/why/diagnosis.hpp"
#include "tools/why/evidence.hpp"

namespace hortator::tools {
namespace {

constexpr int max_message_columns = 400;
constexpr std::size_t max_report_bytes = 2000;

std::string cut_report(std::string report) {
  if (report.size() > max_report_bytes) report.resize(max_report_bytes);
  return report;
}

Evidence evidence_of(const AttemptEnd& attempt, observe::RestartRecord& record,
                     const std::vector<observe::RestartRecord>& earlier) {
  auto evidence = attempt.folder.empty() ? Evidence{.launcher = record} : read_evidence(attempt.folder, record);
  record.run_id = evidence.run_id;
  evidence.launcher->run_id = evidence.run_id;
  evidence.outcome.reset();  // the launcher knows that it has failed
  evidence.earlier = earlier;
  return evidence;
}

void note_hosts(observe::RestartRecord& record, const std::vector<launching::JudgedHost>& hosts) {
  for (const auto& host : hosts) {
    auto text = text::concat(host.name, ' ', host.reason);
    if (!host.is_left_out()) text += ", and " + host.kept_for;
    (host.is_left_out() ? record.left_out : record.kept).push_back(std::move(text));
  }
}

void take(observe::RestartRecord& record, const Diagnosis& diagnosis) {
  record.decision = to_string(diagnosis.decision.value_or(Decision::retry));
  record.rule = diagnosis.rule;
  record.error_class = diagnosis.error_class;
  record.reason = diagnosis.reason;
  record.rank = diagnosis.rank.value_or(-1);
  record.host = diagnosis.host;
  record.problem = diagnosis.problem;
  record.step = diagnosis.step;
  record.step_tolerance = diagnosis.step_tolerance;
  record.signature = diagnosis.signature;
}

// In one call, so that a reader never sees a part of the row.
void append(const std::filesystem::path& folder, const std::string& row) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const auto file = folder / observe::restarts_file;
  const int descriptor = ::open(file.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  const bool is_written =
      descriptor >= 0 && ::write(descriptor, row.data(), row.size()) == static_cast<ssize_t>(row.size());
  if (descriptor >= 0) ::close(descriptor);
  if (!is_written) std::cerr << "hortator: could not write " << file.string() << std::endl;
}

std::string beginning_of(const observe::RestartRecord& record) {
  if (record.rank < 0) return "";
  auto text = text::concat(" on rank ", record.rank);
  if (!record.host.empty()) text += text::concat(" (", record.host, ')');
  if (record.step > 0) text += text::concat(" at step ", record.step);
  return text;
}

void print_decision(const observe::RestartRecord& record, const RestartPlan& plan, int left) {
  auto line = text::concat("hortator: the run ended with exit code ", record.exit_code, beginning_of(record), ": ",
                           record.reason, " (rule ", record.rule, "); ");
  if (plan.restarts) {
    line += text::concat("restarting it from its newest checkpoint (", text::count(left, "restart"), " left)");
    if (plan.delay > 0) line += text::concat(" in ", units::duration(std::chrono::duration<double>(plan.delay)));
  } else {
    line = text::concat("hortator: the run ended with exit code ", record.exit_code, beginning_of(record),
                        " and is not restarted: ", plan.refused);
  }
  std::cerr << core::cut(core::one_line(line), max_message_columns) << std::endl;
}

}  // namespace

Attempts::Attempts(RestartLimits limits)
    : limits_(limits), launch_(text::concat(static_cast<long long>(core::unix_time() * 1e3), '-', getpid())) {}

RestartPlan Attempts::judge(const AttemptEnd& attempt, launching::HostSupply supply) {
  observe::RestartRecord record{.time = core::unix_time(),
                                .launch = launch_,
                                .attempt = static_cast<int>(failed_.size()) + 1,
                                .exit_code = attempt.end.code,
                                .was_signalled = attempt.end.was_signalled,
                                .report = cut_report(attempt.report),
                                .memory_checkpoint = attempt.memory_checkpoint};
  const auto evidence = evidence_of(attempt, record, failed_);
  const auto diagnosis = diagnose(evidence);
  take(record, diagnosis);
  supply.ranks_together = launching::ranks_of_model(evidence.mesh);
  findings_.push_back(findings_of(diagnosis, launching::lost_host(attempt.report),
                                  reports_since(attempt.folder, attempt.began), supply.drops_lost_hosts));
  judged_ = launching::judge_hosts(findings_, supply);
  const auto plan = plan_restart(record, failed_, limits_);
  record.is_restarted = plan.restarts;
  record.delay = plan.delay;
  record.refused = plan.refused;
  if (plan.restarts) note_hosts(record, judged_);
  // Wrong usage without a record may mean that the folder is another run's.
  const bool is_ours = !attempt.folder.empty() && (record.exit_code != usage_exit_code || record.rank >= 0);
  if (is_ours) append(attempt.folder, to_row(record));
  failed_.push_back(record);
  if (limits_.in_total > 0) print_decision(record, plan, limits_.in_total - static_cast<int>(failed_.size()));
  return plan;
}

}  // namespace hortator::tools
