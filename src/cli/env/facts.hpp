#pragma once

#include "cli/env/report.hpp"

namespace hortator::cli::env {

/// Everything that whoever reads a bug report asks for next. Works without mpirun and without a device.
Report gather_facts();

}  // namespace hortator::cli::env
