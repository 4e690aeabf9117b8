#pragma once

#include "tools/env/report.hpp"

namespace hortator::tools::env {

/// Everything that whoever reads a bug report asks for next. Works without mpirun and without a device.
Report gather_facts();

}  // namespace hortator::tools::env
