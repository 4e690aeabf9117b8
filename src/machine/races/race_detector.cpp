#include "machine/races/race_detector.hpp"

#include <utility>

#include "core/code_position.hpp"
#include "core/text/text.hpp"

namespace hortator::machine {

Clock& RaceDetector::clock(int timeline) {
  if (timeline == host_timeline) return host_;
  const auto index = static_cast<std::size_t>(timeline);
  if (streams_.size() <= index) streams_.resize(index + 1);
  return streams_[index];
}

void RaceDetector::submit(int stream) {
  auto& own = clock(stream);
  join(own, host_);
  advance(own, stream);
}

Clock RaceDetector::clock_of(int stream) const {
  const auto index = static_cast<std::size_t>(stream);
  return index < streams_.size() ? streams_[index] : Clock();
}

void RaceDetector::order_stream_after(int stream, const Clock& other) { join(clock(stream), other); }

std::string RaceDetector::describe(const Access& access) const {
  const auto named = names_.find(access.timeline);
  const auto timeline = access.timeline == host_timeline ? "the host"
                        : named != names_.end()          ? named->second
                                                         : text::concat("stream ", access.timeline);
  const auto site = access.user.site == nullptr ? std::string() : describe_site(access.user.site);
  return text::concat("'", access.user.name, "' on ", timeline, site.empty() ? "" : ", called at ", site);
}

void RaceDetector::compare(const Access& earlier, const Access& now, std::string_view kind) {
  if (tick_of(clock(now.timeline), earlier.timeline) >= earlier.tick || !share_bytes(earlier.bytes, now.bytes)) return;
  const auto* const comma = now.user.site == nullptr ? "" : ",";
  add_finding(text::concat(kind, ": ", describe(now), comma, " is not ordered after ", describe(earlier)));
}

// Whatever is submitted from now on comes after all that the host has waited for.
void RaceDetector::forget_ordered(std::vector<Access>& accesses) const {
  constexpr std::size_t few = 32;
  if (accesses.size() < few) return;
  std::erase_if(accesses, [&](const Access& access) { return tick_of(host_, access.timeline) >= access.tick; });
}

void RaceDetector::use(AccessHistory& block, int timeline, const MemoryUser& user, const PatternedRange& bytes,
                       bool writes) {
  if (timeline == host_timeline) advance(host_, host_timeline);
  const Access now{bytes, timeline, tick_of(clock(timeline), timeline), user};
  for (const auto& earlier : block.writes) compare(earlier, now, writes ? "Two writes" : "Read of a write");
  if (writes)
    for (const auto& earlier : block.reads) compare(earlier, now, "Write over a read");
  // An access that covers an earlier one replaces it: whatever comes after the later one comes after both.
  const auto replaces = [&](const Access& earlier) {
    return (writes || earlier.timeline == timeline) && covers(bytes, earlier.bytes);
  };
  if (writes) {
    std::erase_if(block.writes, replaces);
    std::erase_if(block.reads, replaces);
    block.writes.push_back(now);
  } else {
    std::erase_if(block.reads, replaces);
    block.reads.push_back(now);
  }
  forget_ordered(block.writes);
  forget_ordered(block.reads);
}

void RaceDetector::add_finding(std::string finding) {
  if (known_.insert(finding).second) findings_.push_back(std::move(finding));
}

std::vector<std::string> RaceDetector::take_findings() {
  known_.clear();
  return std::exchange(findings_, {});
}

}  // namespace hortator::machine
