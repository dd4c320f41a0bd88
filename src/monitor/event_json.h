#pragma once

#include <tandem/event_log.h>

#include "base/json.h"

namespace tandem {

Json::Object json_of(const EventFields& fields);

}  // namespace tandem
