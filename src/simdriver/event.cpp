#include "simdriver/event.h"

#include <utility>

#include "simdriver/call.h"
#include "simdriver/device.h"

namespace iket::simdriver {

std::shared_ptr<Event::Record> Event::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

void Event::SetRecord(std::shared_ptr<Record> record) {
  const std::lock_guard lock(mutex_);
  record_ = std::move(record);
  captured_ = {};
}

Event::Captured Event::captured() const {
  const std::lock_guard lock(mutex_);
  return captured_;
}

void Event::SetCaptured(Captured captured) {
  const std::lock_guard lock(mutex_);
  captured_ = std::move(captured);
}

CUresult RecordOperation::Run() const {
  record_->time_ns = Processors().TimeNs();
  return CUDA_SUCCESS;
}

CUresult EventRecordNode::Run() const {
  auto record = std::make_shared<Event::Record>();
  record->done = std::make_shared<Completion>();
  record->time_ns = Processors().TimeNs();
  record->done->Finish();
  event_->SetRecord(std::move(record));
  return CUDA_SUCCESS;
}

CUresult EventWaitNode::Run() const {
  if (const auto record = event_->record()) record->done->Wait();
  return CUDA_SUCCESS;
}

CUresult HostOperation::Run() const {
  const InsideHostFunction inside;
  params_.fn(params_.userData);
  return CUDA_SUCCESS;
}

}  // namespace iket::simdriver
