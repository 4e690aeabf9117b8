#include "tools/why/why_view.hpp"

#include <cmath>
#include <ctime>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"

namespace hortator::tools {
namespace {

core::Ink ink_of(const Diagnosis& diagnosis) {
  if (diagnosis.state == "finished" || diagnosis.state == "running") return core::Ink::good;
  return diagnosis.decision == Decision::stop ? core::Ink::bad : core::Ink::warning;
}

std::string beginning(const Diagnosis& diagnosis) {
  auto text = text::concat("rank ", *diagnosis.rank);
  if (!diagnosis.host.empty()) text += text::concat(" (", diagnosis.host, ')');
  if (diagnosis.step > 0) text += text::concat(", step ", diagnosis.step);
  if (diagnosis.step_tolerance > 0 && diagnosis.step > 0)
    text += text::concat(" (or up to ", diagnosis.step_tolerance, " later)");
  if (!diagnosis.place.empty()) text += ", " + diagnosis.place;
  if (diagnosis.time > 0) text += ", at " + core::utc(static_cast<std::time_t>(diagnosis.time));
  return text;
}

void put_chain(core::Page& page, const Diagnosis& diagnosis) {
  const double began = diagnosis.chain.empty() ? 0 : diagnosis.chain.front().time;
  for (const auto& link : diagnosis.chain) {
    auto line = ranks_text(link.ranks);
    if (!link.host.empty()) line += text::concat(" (", link.host, link.ranks.size() > 1 ? ", ...)" : ")");
    if (link.role == Role::cascade && link.time > 0 && began > 0) line += text::print(", %+.3f s", link.time - began);
    page.long_row(std::string(to_string(link.role)), core::one_line(text::concat(line, ": ", link.text)));
  }
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t max_ranges = 8;
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (ranges.size() == max_ranges) {
      ranges.push_back(text::concat("and ", ranks.size() - begin, " more"));
      break;
    }
    ranges.push_back(end - begin == 1 ? text::concat(ranks[begin]) : text::concat(ranks[begin], '-', ranks[end - 1]));
    begin = end;
  }
  return text::concat(ranks.size() == 1 ? "rank " : "ranks ", text::join(ranges));
}

std::string why_view(const std::string& folder, const Diagnosis& diagnosis, int columns, bool colour) {
  core::Page page(columns, colour);
  page.add(folder, core::Ink::bold);
  page.add("  ");
  page.add(diagnosis.state, ink_of(diagnosis));
  page.end_line();
  if (diagnosis.decision) {
    page.long_row(
        "decision",
        text::concat(to_string(*diagnosis.decision), " (rule ", diagnosis.rule, ", class ", diagnosis.error_class, ')'),
        ink_of(diagnosis));
  }
  page.long_row("reason", diagnosis.reason);
  if (diagnosis.rank) page.long_row("began", beginning(diagnosis));
  if (diagnosis.chain.empty() && !diagnosis.problem.empty())
    page.long_row("problem", core::one_line(diagnosis.problem));
  put_chain(page, diagnosis);
  if (!diagnosis.suspect_host.empty()) page.row("suspect", "the node " + diagnosis.suspect_host, core::Ink::warning);
  return std::move(page).text();
}

}  // namespace hortator::tools
