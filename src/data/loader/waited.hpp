#pragma once

namespace hortator::data {

/// Seconds that loops of this process have waited for batches so far, for all loaders together.
double waited();

}  // namespace hortator::data
