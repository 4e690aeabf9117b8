#include "runtime/watchdog/stall_report.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::runtime {
namespace {

constexpr std::size_t max_named = 8;
constexpr std::size_t max_frames = 5;  // in the line; the record has all

std::string time(double seconds) { return units::duration(std::chrono::duration<double>(seconds)); }

std::string ranks(const std::vector<const RankRecord*>& slots) {
  std::vector<int> numbers;
  for (const auto* slot : slots) numbers.push_back(slot->rank);
  return text::concat(numbers.size() == 1 ? "rank " : "ranks ", ranges_of(numbers));
}

// "all_reduce #812 (4.0 MiB, 4 ranks)"
std::string call(const RankRecord::Wait& wait) {
  const auto size = wait.bytes == 0 ? std::string() : units::bytes(wait.bytes) + ", ";
  return text::concat(wait.name, " #", wait.sequence, " (", size, text::count(wait.size, "rank"), ')');
}

std::string place(const RankRecord& slot) {
  if (slot.stack.empty()) return "";
  const auto shown = std::min(slot.stack.size(), max_frames);
  return ", in " + text::join(std::vector(slot.stack.begin(), slot.stack.begin() + static_cast<long>(shown)), " < ");
}

std::string in_phase(const RankRecord& slot) {
  return slot.phase == activity::Phase::running ? "" : text::concat(" (phase: ", to_string(slot.phase), ")");
}

std::string condition(const RankRecord& slot) {
  switch (slot.life) {
    case RankLife::vanished:
      return text::concat("its process ", slot.pid, " has vanished: it was killed, or ended at once");
    case RankLife::left:
      return "it has left: its program has ended, or its State and Accelerator have";
    case RankLife::stopped:
      return text::concat("its process ", slot.pid, " is stopped, as by SIGSTOP", in_phase(slot));
    case RankLife::blocked:
      return text::concat("its process ", slot.pid,
                          " is blocked in the kernel, as by a device or file system that does not answer",
                          in_phase(slot), place(slot));
    case RankLife::running:
    case RankLife::traced:
      break;
  }
  if (slot.device && !slot.device->is_its_turn) {
    return text::concat("its process has begun ", slot.device->name, " #", slot.device->sequence,
                        ", but its GPU is still at work that it was given before, or stuck in it", place(slot));
  }
  if (slot.wait) return text::concat("it is in ", call(*slot.wait), place(slot));
  return text::concat("it has been outside of collectives for ", time(slot.outside_seconds), in_phase(slot),
                      place(slot));
}

std::string others(const std::vector<const RankRecord*>& culprits) {
  std::string text;
  for (std::size_t i = 1; i < culprits.size() && i < max_named; ++i) {
    const auto& slot = *culprits[i];
    text += text::concat("; nor has rank ", slot.rank, " (", slot.host, "): ", condition(slot));
  }
  if (culprits.size() > max_named) text += text::concat("; nor have ", culprits.size() - max_named, " more");
  return text;
}

double longest(const Stall& stall) {
  double seconds = 0;
  for (const auto& side : stall.sides) seconds = std::max(seconds, side.seconds);
  return seconds;
}

std::string absent(const Stall& stall) {
  std::vector<const RankRecord*> waiting;
  for (const auto& side : stall.sides) waiting.insert(waiting.end(), side.ranks.begin(), side.ranks.end());
  std::ranges::sort(waiting, {}, &RankRecord::rank);
  return text::concat("does not come to ", call(stall.sides.front().wait), ", for which ", ranks(waiting),
                      waiting.size() == 1 ? " has" : " have", " waited for ", time(longest(stall)), ": ",
                      condition(*stall.culprits.front()), others(stall.culprits));
}

// " (rank 1: hortator::Accelerator::gather, called in train+0x2f41; ...)", for one rank of each side.
std::string calls_of(const Stall& stall) {
  std::vector<std::string> calls;
  for (const auto& side : stall.sides) {
    const auto call = program_call(side.ranks.front()->stack);
    if (!call.empty()) calls.push_back(text::concat("rank ", side.ranks.front()->rank, ": ", call));
  }
  return calls.empty() ? "" : text::concat(" (", text::join(calls, "; "), ')');
}

std::string apart(const Stall& stall) {
  std::string mine;
  std::vector<std::string> rest;
  for (const auto& side : stall.sides) {
    if (side.ranks.front() == stall.culprits.front()) {
      mine = call(side.wait);
    } else {
      rest.push_back(text::concat(ranks(side.ranks), side.ranks.size() == 1 ? " is in " : " are in ", call(side.wait)));
    }
  }
  std::vector<const RankRecord*> beside(stall.culprits.begin() + 1, stall.culprits.end());
  const auto together = beside.empty() ? std::string() : text::concat(", with ", ranks(beside), ',');
  return text::concat("is in ", mine, together, " while ", text::join(rest, " and "),
                      ": they have waited for each other for ", time(longest(stall)), calls_of(stall));
}

std::string inside(const Stall& stall) {
  const auto& side = stall.sides.front();
  return text::concat(
      "has been in ", call(side.wait), " for ", time(side.seconds),
      stall.is_on_devices
          ? ": it runs on the GPUs of all ranks, yet it does not end: the links between them, or the "
            "network, do not answer"
          : ": all ranks have come to it, yet it does not end: the network or a device does not answer");
}

std::string unknown(const Stall& stall) {
  const auto& side = stall.sides.front();
  return text::concat(ranks(side.ranks), side.ranks.size() == 1 ? " has" : " have", " been in ", call(side.wait),
                      " for ", time(side.seconds), ", and nothing is known of ",
                      text::count(stall.unknown, "other rank"), " of it");
}

std::string problem(const Stall& stall) {
  switch (stall.kind) {
    case StallKind::absent:
      return absent(stall);
    case StallKind::apart:
      return apart(stall);
    case StallKind::inside:
      return inside(stall);
    case StallKind::unknown:
      break;
  }
  return unknown(stall);
}

/// What a rank would throw if the others came, which is often why they do not.
std::string note_of(const Stall& stall) {
  for (const auto& side : stall.sides) {
    for (const auto* slot : side.ranks)
      if (!slot->note.empty()) return text::concat("; rank ", slot->rank, " reports: ", slot->note);
  }
  return "";
}

std::string type_of(const Stall& stall, const RankRecord& culprit) {
  constexpr std::array kinds = {"absent", "apart", "inside", "unknown"};
  constexpr std::array lives = {"running", "blocked", "traced", "stopped", "vanished", "left"};
  return text::concat(kinds[static_cast<std::size_t>(stall.kind)], ' ', lives[static_cast<std::size_t>(culprit.life)]);
}

std::string detail(const RankRecord& slot) {
  auto lines = text::concat("rank ", slot.rank, " (", slot.host, ", process ", slot.pid, "): ");
  lines += slot.wait ? text::concat("in ", call(*slot.wait), " for ", time(slot.wait->seconds)) : condition(slot);
  lines += '\n';
  for (const auto& frame : slot.stack) lines += text::concat("    ", frame, '\n');
  return lines;
}

}  // namespace

StallReport describe(const Stall& stall, std::span<const int> silent_nodes, const std::string& note) {
  StallReport report{.culprit = stall.culprits.empty() ? stall.sides.front().ranks.front() : stall.culprits.front(),
                     .problem = problem(stall),
                     .details = {}};
  report.where = program_call(report.culprit->stack);
  report.type = type_of(stall, *report.culprit);
  if (!silent_nodes.empty()) {
    report.problem += text::concat("; no word from ", silent_nodes.size() == 1 ? "node " : "nodes ",
                                   ranges_of(silent_nodes), " (counted from 0)");
  }
  if (!note.empty()) report.problem += "; " + note;
  report.problem += note_of(stall);
  if (stall.kind == StallKind::absent) {
    for (const auto* slot : stall.culprits) report.details += detail(*slot);
  }
  for (const auto& side : stall.sides) report.details += detail(*side.ranks.front());
  return report;
}

// The outermost function of Hortator within the body of hortator::run.
std::string program_call(std::span<const std::string> stack) {
  const auto run = std::find(stack.rbegin(), stack.rend(), "hortator::run");
  const auto body = stack.first(run == stack.rend() ? stack.size() : static_cast<std::size_t>(stack.rend() - run) - 1);
  const auto call = std::find_if(body.rbegin(), body.rend(),
                                 [](const std::string& frame) { return frame.starts_with("hortator::"); });
  if (call == body.rend()) return "";
  return call == body.rbegin() ? *call : text::concat(*call, ", called in ", *std::prev(call));
}

std::string ranges_of(std::span<const int> numbers) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (pieces.size() == max_named) {
      pieces.push_back(text::concat("and ", numbers.size() - begin, " more"));
      break;
    }
    pieces.push_back(end - begin == 1 ? text::concat(numbers[begin])
                                      : text::concat(numbers[begin], '-', numbers[end - 1]));
    begin = end;
  }
  return text::join(pieces);
}

}  // namespace hortator::runtime
