mod events;
mod pod_template;
mod slow_start;
