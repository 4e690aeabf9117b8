#pragma once

#include "tools/env/report.hpp"

namespace hortator::tools::env {

/// The facts that a bug report needs. Works without mpirun and without a GPU.
Report gather_facts();

}  // namespace hortator::tools::env
