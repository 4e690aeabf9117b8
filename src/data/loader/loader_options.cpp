#include "data/loader/loader_options.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/orders/order.hpp"

namespace hortator::data {
namespace {

void check_any(const LoaderOptions& options) {
  if (options.prefetch < 0) {
    throw UsageError({.what = text::concat("prefetch is ", options.prefetch), .hint = "use 0 or more batches"});
  }
  if (options.workers < 1 || (options.workers > 1 && options.prefetch == 0)) {
    throw UsageError({.what = text::concat("workers is ", options.workers, " and prefetch is ", options.prefetch),
                      .why = "with a prefetch of 0 the loop itself reads",
                      .hint = "use 1 or more workers, and a prefetch of 1 or more if there are several"});
  }
  if ((options.sampler && options.shuffle) || (options.order != ShuffleOrder::counter && !options.shuffle)) {
    throw UsageError({.what = options.sampler ? "A loader has both a sampler and shuffle = true"
                                              : "A loader has a shuffle order, but shuffle = false",
                      .hint = "`order` applies to `shuffle` only, and a sampler replaces `shuffle`"});
  }
}

void check_for_samples(const LoaderOptions& options, const Contents& contents) {
  if (contents.choose && options.batch_size != 1) {
    throw UsageError({.what = text::concat("batch_size is ", options.batch_size, ", but the batches are given"),
                      .why = "each of them is one batch of its own size",
                      .hint = "leave batch_size out"});
  }
  if (options.workers == 1 || contents.samples->is_shareable()) return;
  throw UsageError({.what = text::concat("This data set cannot be read by ", options.workers, " workers at once"),
                    .why = "its get() or get_batch(), or the function that joins samples, is not const: it may change "
                           "what another thread is using",
                    .hint = "make it const and safe for several threads, or use one worker"});
}

void check_for_stream(const LoaderOptions& options) {
  if (options.shuffle || options.sampler) {
    throw UsageError({.what = text::concat("A stream cannot be ", options.shuffle ? "shuffled" : "read by a sampler"),
                      .why = "its samples come one after the other, in the stream's order",
                      .hint = "shuffle within the stream: set_epoch(std::int64_t) gives it the epoch"});
  }
  if (options.workers > 1) {
    throw UsageError({.what = text::concat("A stream cannot be read by ", options.workers, " workers at once"),
                      .why = "its samples come one after the other",
                      .hint = "use one worker; a stream may have threads of its own"});
  }
}

}  // namespace

void check(const LoaderOptions& options, const Contents& contents) {
  check_any(options);
  contents.stream ? check_for_stream(options) : check_for_samples(options, contents);
}

std::shared_ptr<const Sampler> sampler_of(const LoaderOptions& options) {
  if (options.sampler) return options.sampler;
  if (!options.shuffle) return sequential_sampler();
  return options.order == ShuffleOrder::randperm ? randperm_sampler() : counter_sampler();
}

}  // namespace hortator::data
