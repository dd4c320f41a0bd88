#include "monitor/step_line.h"
#include "monitor/throughput.h"

#include <vector>

#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

// " 120/2000"
std::string of_total(std::int64_t count, std::int64_t total) {
  return total > 0 ? str(pad_left(str(count), str(total).size()), '/', total) : str(count);
}

std::string norm_column(const StepReport& report) {
  return report.was_skipped ? "skipped  " : str("norm ", pad_left(fit(report.norm, 4, 2), 4));
}

}  // namespace

std::string step_line(const StepReport& report) {
  std::vector<std::string> columns = {str("step ", of_total(report.step, report.num_steps))};
  if (report.num_epochs > 1) columns.push_back(str("epoch ", of_total(report.epoch, report.num_epochs)));
  columns.push_back(str("loss ", pad_left(fit(report.loss, 6, 4), 6)));
  if (report.terms.size() > 1) {
    for (const auto& [name, mean] : report.terms) columns.push_back(str(name, ' ', pad_left(fit(mean, 6, 4), 6)));
  }
  columns.push_back(norm_column(report));
  columns.push_back(str("lr ", scientific(report.lr)));
  columns.push_back(pad_left(step_time(report.seconds), 6));
  columns.push_back(str(pad_left(short_count(report.per_second), 5), ' ', report.unit));
  if (report.mfu) columns.push_back(str("mfu ", pad_left(mfu_text(*report.mfu), 5)));
  if (report.gpu_memory) columns.push_back(str("mem ", pad_left(short_bytes(*report.gpu_memory), 8)));
  columns.push_back(counted(report.num_ranks, "rank"));
  columns.push_back(str("eta ", short_time(report.eta)));
  return join(columns, " | ");
}

}  // namespace tandem
