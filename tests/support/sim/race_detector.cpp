#include "support/sim/race_detector.hpp"

#include <utility>

#include "core/text/text.hpp"

namespace hortator::sim {
namespace {

bool overlap(const Access& a, const Access& b) { return a.begin < b.end && b.begin < a.end; }

std::string place_of(int timeline) {
  return timeline == host_timeline ? "the host" : text::concat("stream ", timeline);
}

}  // namespace

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

void RaceDetector::compare(const Access& earlier, const Access& now, std::string_view kind) {
  if (!overlap(earlier, now) || tick_of(clock(now.timeline), earlier.timeline) >= earlier.tick) return;
  add_finding(text::concat(kind, ": '", now.name, "' on ", place_of(now.timeline), " is not ordered after '",
                           earlier.name, "' on ", place_of(earlier.timeline)));
}

void RaceDetector::use(AccessHistory& block, int timeline, std::string_view name, std::size_t begin, std::size_t end,
                       bool writes) {
  if (timeline == host_timeline) advance(host_, host_timeline);
  const Access now{begin, end, timeline, tick_of(clock(timeline), timeline), name};
  for (const auto& earlier : block.writes) compare(earlier, now, writes ? "Two writes" : "Read of a write");
  if (writes)
    for (const auto& earlier : block.reads) compare(earlier, now, "Write over a read");
  // An access that covers an earlier one replaces it: whatever comes after the later one comes after both.
  const auto covers = [&](const Access& earlier) {
    return now.begin <= earlier.begin && earlier.end <= now.end && (writes || earlier.timeline == timeline);
  };
  if (writes) {
    std::erase_if(block.writes, covers);
    std::erase_if(block.reads, covers);
    block.writes.push_back(now);
  } else {
    std::erase_if(block.reads, covers);
    block.reads.push_back(now);
  }
}

void RaceDetector::add_finding(std::string finding) {
  if (known_.insert(finding).second) findings_.push_back(std::move(finding));
}

std::vector<std::string> RaceDetector::take_findings() {
  known_.clear();
  return std::exchange(findings_, {});
}

}  // namespace hortator::sim
