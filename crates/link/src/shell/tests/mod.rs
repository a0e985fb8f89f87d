mod following;
mod gaps;
mod loading;
mod resuming;
mod saving;
