#include "comm/decorators/call_comparison.hpp"

#include <hortator/error.hpp>

#include "comm/decorators/call_table.hpp"
#include "core/call_site.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

std::string describe(const mpi::Call& call) {
  auto description = call.verb.text();
  if (!call.detail.empty()) description += text::concat(" (", call.detail, ")");
  description +=
      call.has_same_bytes && call.bytes > 0 ? text::concat(" of ", call.bytes, " B on the host") : " on the host";
  return call.root < 0 ? description : text::concat(description, " from or to rank ", call.root);
}

}  // namespace

void CallComparison::compare(const TensorCall& call) const {
  const auto kind = core::mix(core::mix(call.hash, ++sequence_), CallSite::current());
  if (mpi::equal_on_all(comm_, core::mix(kind, call.shapes))) return;
  const auto site = CallSite::describe_current();
  const auto table = tabulate(mpi::all_gather(
      comm_, text::concat(call.text(), site.empty() ? "" : " at ", site, ", its collective ", sequence_)));
  if (mpi::equal_on_all(comm_, kind)) throw UsageError(different_shapes(table, call.verb)).on_rank(table.odd_rank);
  auto problem = different_calls(table);
  problem.hint += "; addr2line -e PROGRAM ADDRESS gives the line";
  throw UsageError(problem).on_rank(table.odd_rank);
}

void CallComparison::compare(const mpi::Call& call) const {
  auto hash = core::hash(call.detail);
  for (const auto word : call.verb.packed()) hash = core::mix(hash, word);
  hash = core::mix(hash, static_cast<std::uint64_t>(call.root));
  if (call.has_same_bytes) hash = core::mix(hash, call.bytes);
  compare(TensorCall{.verb = "", .hash = hash, .text = [&] { return describe(call); }});
}

}  // namespace hortator::comm
