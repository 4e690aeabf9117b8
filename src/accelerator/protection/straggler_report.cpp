#include "accelerator/protection/straggler_report.hpp"

#include <hortator/error.hpp>

#include "accelerator/protection/host_reports.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "observe/status/host_report.hpp"

namespace hortator::accelerator {
void check(const StragglerOptions& options) {
  if (!options.on_straggler || (options.factor > 1 && options.patience >= 1)) return;
  throw UsageError(
      {.what = text::concat("stragglers.factor is ", options.factor, " and patience is ", options.patience),
       .why = "a rank is slow if it takes that many times as long as the others, in that many reports",
       .hint = "use a factor above 1 and a patience of 1 or more"});
}

StragglerReport::StragglerReport(const StragglerOptions& options, const mpi::Communicator& host)
    : options_(options),
      is_first_(host.rank() == 0),
      hosts_(mpi::all_gather(host, std::string_view(mpi::host_name()))),
      times_(host.rank(), host.size()),
      watch_(host.size(), options.factor, options.patience) {}

void StragglerReport::announce() {
  for (const auto& [rank, factor] : watch_.note(times_.take_reports())) {
    const Straggler slow{.rank = rank, .host = hosts_[static_cast<std::size_t>(rank)], .factor = factor};
    if (is_first_) {
      const auto text = text::concat("rank ", slow.rank, " on ", slow.host, " takes ", units::number(slow.factor),
                                     " times as long as the other ranks, which wait for it");
      log::warn(text);
      report_host(observe::slow_host, slow.host, text);
    }
    options_.on_straggler(slow);
  }
}

}  // namespace hortator::accelerator
