#include "train/resume.h"

#include "base/text.h"

namespace tandem {

constexpr std::string_view kWeightsOf = "weights:";

ResumeRequest parse_resume(std::string_view text) {
  using From = ResumeRequest::From;
  if (text == "auto") return {From::Auto};
  if (text == "latest") return {From::Latest};
  if (text == "no") return {From::Nothing};
  if (text == "weights") return {From::LatestWeights};
  if (text.starts_with(kWeightsOf)) return {From::Weights, text.substr(kWeightsOf.size())};
  return {From::Path, text};
}

std::string resume_text(const ResumeRequest& request) {
  using From = ResumeRequest::From;
  switch (request.from) {
    case From::Auto: return "auto";
    case From::Latest: return "latest";
    case From::Nothing: return "no";
    case From::LatestWeights: return "weights";
    case From::Weights: return str(kWeightsOf, request.path.native());
    case From::Path: break;
  }
  return request.path;
}

}  // namespace tandem
