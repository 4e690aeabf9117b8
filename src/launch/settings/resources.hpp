#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Amounts in the forms in which schedulers write them.
namespace hortator::launching {

/// GPUs, such as "4", "a100:4", "a100" (one) and "a100:2,h100:2".
struct Gpus {
  int count = 0;
  std::string types = "";  ///< "a100:2,h100:2"; empty: of any type
};
std::optional<Gpus> parse_gpus(std::string_view text);

/// Memory in MB, from "64G", "512M", "100gb" and "4096" (MB).
std::optional<long long> parse_memory(std::string_view text);

/// The tasks of an array.
struct ArrayTasks {
  std::string numbers = "";         ///< "0-3", "0-8:2", "1,5"
  std::optional<int> at_once = {};  ///< the number after %
  long long count = 0;              ///< of tasks
  bool is_one_range() const { return numbers.find(',') == std::string::npos && numbers.find('-') != std::string::npos; }
};
std::optional<ArrayTasks> parse_array(std::string_view text);

/// One setting that PBS's `-l` asks for.
struct PbsResource {
  std::string_view key = "";  ///< empty: `value` is a whole line "-l name=value"
  std::string value = "";
};

/// Reads the value of PBS's `-l`: "select=2:ncpus=8:mpiprocs=4,walltime=01:00:00", and "nodes=2:ppn=4". Throws
/// UsageError for a request that a job of equal nodes cannot express.
std::vector<PbsResource> parse_pbs_resources(const std::string& text);

/// "BEGIN,END,FAIL" for PBS's points "abe"; nothing for other text.
std::optional<std::string> mail_types_of_points(std::string_view points);
/// The reverse; nothing for a type that PBS does not have.
std::optional<std::string> mail_points_of_types(const std::string& types);

}  // namespace hortator::launching
