#pragma once

#include <tandem/event_log.h>

#include <vector>

#include "base/json.h"

namespace tandem {

Json::Object json_of(const EventFields& fields);
Json::Object json_of(const std::vector<Baseline>& baselines);

}  // namespace tandem
