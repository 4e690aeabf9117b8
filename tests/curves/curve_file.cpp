#include "curve_file.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::curves {
namespace {

constexpr const char* header = "kind\tconfiguration\tlosses\tfeatures\treason";
constexpr std::size_t columns = 5, digits = 16;

bool is_bits(const std::string& text) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string described(const std::string& bits) {
  return text::concat(bits, text::print(" (%.17g)", std::bit_cast<double>(std::stoull(bits, nullptr, 16))));
}

auto find(const Curves& curves, const std::string& kind, const std::string& configuration) {
  return std::ranges::find_if(curves,
                              [&](const Curve& one) { return one.kind == kind && one.configuration == configuration; });
}

std::vector<std::string> bits_of_all(const std::vector<double>& losses) {
  std::vector<std::string> bits;
  for (const auto loss : losses) bits.push_back(bits_of(loss));
  return bits;
}

}  // namespace

std::string bits_of(double loss) {
  return text::print("%016llx", static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(loss)));
}

Curves parse(const std::string& text, const std::filesystem::path& file) {
  Curves curves;
  std::size_t number = 0;
  const auto refuse = [&](const char* why) {
    throw UsageError({.what = text::concat(file.string(), ":", number, " is not a row of stored losses"),
                      .why = why,
                      .hint = "restore the file, or remove the row and renew it"});
  };
  for (const auto& line : text::split(text, '\n')) {
    ++number;
    if (number == 1 && line != header) refuse("the header is another");
    if (number == 1 || line.empty()) continue;
    const auto fields = text::split(line, '\t');
    if (fields.size() != columns) refuse("it does not have five columns");
    Curve curve{.kind = fields[0],
                .features = fields[3],
                .configuration = fields[1],
                .losses = text::split(fields[2], ' '),
                .reason = fields[4]};
    if (!std::ranges::all_of(curve.losses, is_bits)) refuse("a loss is not 16 hexadecimal digits");
    if (curve.reason.empty()) refuse("it has no reason");
    if (find(curves, curve.kind, curve.configuration) != curves.end()) refuse("it is there twice");
    curves.push_back(std::move(curve));
  }
  if (number == 0) refuse("the file is empty");
  return curves;
}

std::string to_text(const Curves& curves) {
  std::string text = text::concat(header, '\n');
  for (const auto& one : curves)
    text += text::concat(one.kind, '\t', one.configuration, '\t', text::join(one.losses, " "), '\t', one.features, '\t',
                         one.reason, '\n');
  return text;
}

std::vector<std::string> differences(const Curves& stored, const std::string& kind,
                                     const std::map<std::string, std::vector<double>>& computed) {
  std::vector<std::string> found;
  for (const auto& [configuration, losses] : computed) {
    const auto curve = find(stored, kind, configuration);
    if (curve == stored.end()) {
      found.push_back(text::concat(configuration, ": not stored for this kind of machine"));
      continue;
    }
    const auto bits = bits_of_all(losses);
    if (bits.size() != curve->losses.size()) {
      found.push_back(text::concat(configuration, ": ", bits.size(), " steps, stored ", curve->losses.size()));
      continue;
    }
    const auto [mine, theirs] = std::ranges::mismatch(bits, curve->losses);
    if (mine == bits.end()) continue;
    found.push_back(text::concat(configuration, ", step ", mine - bits.begin() + 1, ": ", described(*mine), ", stored ",
                                 described(*theirs)));
  }
  return found;
}

Curves renewed(Curves stored, const Curve& common, const std::map<std::string, std::vector<double>>& computed) {
  std::erase_if(stored, [&](const Curve& one) {  // also configurations that do not exist any more
    const auto losses = computed.find(one.configuration);
    return one.kind == common.kind && (losses == computed.end() || bits_of_all(losses->second) != one.losses);
  });
  for (const auto& [configuration, losses] : computed) {
    if (find(stored, common.kind, configuration) != stored.end()) continue;
    auto curve = common;
    curve.configuration = configuration;
    curve.losses = bits_of_all(losses);
    stored.push_back(std::move(curve));
  }
  std::ranges::sort(stored, {}, [](const Curve& one) { return std::pair(one.kind, one.configuration); });
  return stored;
}

}  // namespace hortator::curves
