#include "parallel/uneven/uneven_inputs.hpp"

#include <hortator/error.hpp>
#include <limits>

#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::parallel {
namespace {

constexpr std::int64_t kinds = 5;
constexpr std::int64_t ranks = std::int64_t{1} << 32;
constexpr std::int64_t listener = 0;

std::string describe(std::int64_t code) {
  constexpr const char* names[] = {"nothing", "planning of buckets", "reduction of a bucket", "broadcast of buffers",
                                   "search for overflow"};
  return text::concat("the ", names[code % kinds], " of model ", code / kinds);
}

}  // namespace

int UnevenInputs::announce(Collective what, int model) const {
  return exchange(model * kinds + static_cast<std::int64_t>(what)).speaker;
}

UnevenInputs::Announcement UnevenInputs::listen() const { return exchange(listener); }

UnevenInputs::Announcement UnevenInputs::exchange(std::int64_t code) const {
  const AnyCallSite anywhere;
  const bool speaks = code != listener;
  const auto highest = mpi::all_reduce(host_, speaks ? code * ranks + host_.rank() : listener, mpi::Op::max);
  const auto lowest = mpi::all_reduce(host_, speaks ? code : std::numeric_limits<std::int64_t>::max(), mpi::Op::min);
  const auto agreed = highest / ranks;
  if (agreed != listener && lowest != agreed) {
    throw UsageError({.what = text::concat("Ranks within join_uneven_inputs run different collectives: ",
                                           describe(lowest), " and ", describe(agreed)),
                      .why = "all ranks that still have batches must run the same ones",
                      .hint = "call models and backward in the same order on every rank"});
  }
  return {.what = static_cast<Collective>(agreed % kinds),
          .model = static_cast<int>(agreed / kinds),
          .speaker = static_cast<int>(highest % ranks)};
}

}  // namespace hortator::parallel
