#include "observe/operators/operator_record.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <hortator/error.hpp>
#include <numeric>

#include "core/text/json.hpp"
#include "core/text/text.hpp"

namespace hortator::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;

std::string hex(std::uint64_t number) { return text::print("%016llx", static_cast<unsigned long long>(number)); }

std::uint64_t number_of_hex(const Json& json) {
  const auto text = json.get<std::string>();
  constexpr std::size_t digits = 16;
  if (text.size() != digits || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::invalid_argument(text);
  return std::stoull(text, nullptr, digits);
}

std::vector<std::int64_t> sizes_of(const Json& json) {
  auto sizes = json.get<std::vector<std::int64_t>>();
  if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; })) throw std::invalid_argument("a size");
  return sizes;
}

Json brief_json(const TensorRecord& tensor) { return Json::array({tensor.type, tensor.sizes, hex(tensor.bits)}); }

Json whole_json(const TensorRecord& tensor) {
  auto json = brief_json(tensor);
  json.push_back(hex(tensor.elements));
  json.push_back(core::json_of(tensor.sum));
  json.push_back(core::json_of(tensor.norm));
  return json;
}

Json json_of(const OperatorRecord& record) {
  Json json{{"op", record.name}, {"path", record.path}, {"near", record.near}, {"backward", record.is_backward}};
  if (record.is_of_parts) json["of_parts"] = true;
  if (record.part >= 0) json["part"] = record.part;
  json["in"] = Json::array();
  for (const auto& tensor : record.inputs) json["in"].push_back(brief_json(tensor));
  json["out"] = Json::array();
  for (const auto& tensor : record.results) json["out"].push_back(whole_json(tensor));
  return json;
}

TensorRecord tensor_of(const Json& json) {
  TensorRecord tensor{.type = json.at(0), .sizes = sizes_of(json.at(1)), .bits = number_of_hex(json.at(2))};
  if (json.size() == 3) return tensor;
  tensor.elements = number_of_hex(json.at(3));
  tensor.sum = core::number_of(json.at(4));
  tensor.norm = core::number_of(json.at(5));
  return tensor;
}

OperatorRecord operator_of(const Json& json) {
  OperatorRecord record{.name = json.at("op"),
                        .path = json.at("path"),
                        .near = json.at("near"),
                        .is_backward = json.at("backward"),
                        .is_of_parts = json.value("of_parts", false),
                        .part = json.value("part", -1)};
  for (const auto& tensor : json.at("in")) record.inputs.push_back(tensor_of(tensor));
  for (const auto& tensor : json.at("out")) record.results.push_back(tensor_of(tensor));
  return record;
}

[[noreturn]] void refuse(const std::filesystem::path& file, std::size_t line, const char* why) {
  throw UsageError({.what = text::concat(file.string(), ", line ", line, ": not a record of operators"),
                    .why = why,
                    .hint = "record the step again, with --record-operators or record_operators.py"});
}

}  // namespace

std::int64_t TensorRecord::count() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::string record_file(int rank) { return text::print("rank-%05d.jsonl", rank); }

std::string to_text(const StepRecord& record) {
  auto text =
      Json{
          {"hortator_operators", format_version}, {"step", record.step}, {"rank", record.rank}, {"ranks", record.ranks}}
          .dump();
  for (const auto& one : record.operators) text += '\n' + json_of(one).dump();
  return text + '\n' + Json{{"operators", record.operators.size()}}.dump() + '\n';
}

StepRecord parse_step_record(const std::string& text, const std::filesystem::path& file) {
  StepRecord record;
  std::size_t number = 0;
  bool is_whole = false;
  for (const auto& line : text::split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const auto json = core::parse_record<Json>(line);
    if (!json.is_object()) refuse(file, number, "it is not JSON: the run may have ended while it was written");
    try {
      if (number == 1) {
        if (json.at("hortator_operators") != format_version) refuse(file, number, "it is of another version");
        record = {.step = json.at("step"), .rank = json.at("rank"), .ranks = json.at("ranks")};
      } else if (json.contains("op")) {
        is_whole = false;
        record.operators.push_back(operator_of(json));
      } else {
        is_whole = json.at("operators") == record.operators.size();
      }
    } catch (const nlohmann::json::exception&) {
      refuse(file, number, "a field is missing, or of another type");
    } catch (const std::logic_error&) {
      refuse(file, number, "a hash is not 16 hexadecimal digits, or a size is negative");
    }
  }
  if (!is_whole) refuse(file, number, "its end is missing: the run may have ended while it was written");
  return record;
}

}  // namespace hortator::observe
