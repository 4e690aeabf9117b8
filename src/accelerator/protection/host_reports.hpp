#pragma once

#include <string>
#include <string_view>

namespace hortator::accelerator {

/// Adds a row to status/hosts.jsonl in the run's folder, by which `hortator launch` leaves hosts out of restarts.
/// `sign` is one of HostReport's. For rank 0. A file system that refuses it ends nothing: rank 0 warns. Local.
void report_host(std::string_view sign, const std::string& host, const std::string& text);

}  // namespace hortator::accelerator
