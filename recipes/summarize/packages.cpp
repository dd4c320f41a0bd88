#include "recipes/summarize/packages.h"

#include "packages_csv.h"
#include "text/csv.h"

namespace tandem::summarize {

SummarySets read_packages() {
  const CsvTable table = CsvTable::parse(kPackagesCsv, "builtin:packages");
  const auto ids = table.column("id");
  const auto dialogues = table.column("dialogue");
  const auto summaries = table.column("summary");
  const auto splits = table.column("split");
  SummarySets sets;
  for (std::size_t i = 0; i < table.num_rows(); ++i) {
    auto& set = splits[i] == "train" ? sets.train : sets.held_out;
    set.push_back(
        {.id = std::string(ids[i]), .dialogue = std::string(dialogues[i]), .summary = std::string(summaries[i])});
  }
  return sets;
}

}  // namespace tandem::summarize
