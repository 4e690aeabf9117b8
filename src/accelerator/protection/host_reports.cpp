#include "accelerator/protection/host_reports.hpp"

#include "core/log.hpp"
#include "core/time.hpp"
#include "observe/status/host_report.hpp"
#include "observe/status/status_file.hpp"
#include "observe/status/status_record.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::accelerator {

void report_host(std::string_view sign, const std::string& host, const std::string& text) {
  const auto run = runtime::current_run();
  if (run.is_foreign_folder) return;
  const auto file = run.folder / observe::status_folder / observe::host_reports_file;
  const observe::HostReport report{
      .time = core::unix_time(), .run_id = run.id, .host = host, .sign = std::string(sign), .text = text};
  if (!observe::append_row(file, observe::to_row(report))) log::warn("could not write ", file.string());
}

}  // namespace hortator::accelerator
